# All applications, each a module: those that have a folder in workflows/. `snakemake taxi` runs one of them.
from snakemake.utils import min_version

min_version("9.15")


include: "workflows/common.smk"


# Before the modules: the first report that is named has the cover.
report: "workflows/report.rst"


for application in APPLICATIONS:
    prefix = f"{application}_"

    module:
        name: application
        snakefile:
            f"workflows/{application}/Snakefile"
        config:
            config

    use rule * from application as prefix*

    rule:
        name:
            application
        input:
            getattr(rules, f"{application}_all").input,


# What stands apart runs by its name alone: `snakemake minimal`, or the benchmarks, which measure this machine for minutes.
rule all:
    default_target: True
    input:
        [
            getattr(rules, name).input
            for name, application in APPLICATIONS.items()
            if not application.apart
        ],
