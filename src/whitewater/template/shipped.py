"""What is rendered of a checkout besides the packages in ``src/``. By ``envs/build_hook.py`` the wheel has a copy."""

SHIPPED = (
    ".devcontainer", ".dockerignore", ".editorconfig", ".github/workflows/ci.yml", ".gitignore", ".gitlab-ci.yml",
    ".pre-commit-config.yaml", "Dockerfile", "LICENSE", "Makefile", "Snakefile", "config", "envs", "notebooks",
    "profiles", "pyproject.toml", "tests/apps", "tests/conftest.py", "workflows",
)  # fmt: skip
