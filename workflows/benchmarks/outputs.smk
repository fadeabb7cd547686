import json

# The rows of the published table: what has a size of its own.
ROWS = [
    name
    for name, section in lookup("benchmarks", within=config).items()
    if isinstance(section, dict) and "scale" in section
]
# Name of a picture -> subcategory of the report, what is shown.
PICTURES = {
    "variants": ("Pictures", "all variants of each row"),
    "roofline": ("Pictures", "against the limits of this machine"),
    "search": ("Pictures", "time against data size (R14, R15)"),
    "scaling": ("Pictures", "time against workers"),
}


def sections(*names):
    """Return sections of the configuration as JSON."""
    chosen = {name: lookup(f"benchmarks/{name}", within=config) for name in names}
    return json.dumps(chosen[names[0]] if len(names) == 1 else chosen, sort_keys=True)


def settings_of_limits(wildcards):
    return sections("limits")


def settings_of_row(wildcards):
    return sections(wildcards.row)


def settings_of_scaling(wildcards):
    """Return the settings of `scaling`, with those of the rows that it measures."""
    return sections("scaling", *lookup("benchmarks/scaling/rows", within=config))
