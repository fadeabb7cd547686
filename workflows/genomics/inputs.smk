import os

STORE_FILES = ["zarr.json", ".zmetadata", ".zgroup", ".zattrs"]
PLINK_FILES = [".bed", ".bim", ".fam"]
# Whether the genotypes are simulated, and whether outliers are looked for: the steps of both run only then.
GENERATED = lookup("genomics/ingest/source", within=config) == "generated"
REMOVES_OUTLIERS = lookup("genomics/outliers/iterations", within=config) > 0


def here(names):
    """Return the files that exist on this machine; a missing one is left to the error of the step that reads it."""
    paths = {os.path.expanduser(name.removeprefix("file://")) for name in names}
    return sorted(path for path in paths if "://" not in path and os.path.isfile(path))


def of_store(store):
    """Return the files that say what is in a store of Zarr: they stand for the store, whose chunks may be millions."""
    return [f"{store.rstrip('/')}/{name}" for name in STORE_FILES] if store else []


def of_plink(prefix):
    return [f"{prefix}{suffix}" for suffix in PLINK_FILES] if prefix else []


def source_files(wildcards):
    """Return the local files that `ingest` reads, so that a changed one runs it again."""
    chosen = lookup("genomics/ingest", within=config)
    malariagen = chosen["malariagen"]
    named = {
        "generated": [],
        "vcz": of_store(chosen["vcz"]["store"]),
        "malariagen": of_store(malariagen["store"]) + of_store(malariagen["sites"]),
        "plink": of_plink(chosen["plink"]["prefix"]),
        "vcf": chosen["vcf"]["paths"],
    }
    return here([*named[chosen["source"]], chosen["labels"]["table"]])


def second_files(wildcards):
    """Return the local files of the second data set, so that a changed one is projected again."""
    second = lookup("genomics/project/second", within=config)
    return here(of_plink(second) + of_store(second))


def workers(wildcards):
    """Return the cores of a step: one for a small simulation, so that other applications run beside it, else all."""
    simulated = lookup("genomics/simulate", within=config)
    samples = sum(simulated["samples_by_population"].values())
    bases = simulated["chromosomes"] * simulated["chromosome_length"]
    return 1 if GENERATED and samples * bases <= 5e10 else workflow.cores
