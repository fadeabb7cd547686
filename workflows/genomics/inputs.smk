from functools import partial

STORE_FILES = ["zarr.json", ".zmetadata", ".zgroup", ".zattrs"]
PLINK_FILES = [".bed", ".bim", ".fam"]
SOURCE = lookup("genomics/ingest/source", within=config)
# Whether the genotypes are simulated, and whether outliers are looked for: the steps of both run only then.
GENERATED = SOURCE == "generated"
REMOVES_OUTLIERS = lookup("genomics/outliers/iterations", within=config) > 0


def of_store(store):
    """Return the files that say what is in a store of Zarr: to Snakemake they stand for its chunks, maybe millions."""
    return [f"{store.rstrip('/')}/{name}" for name in STORE_FILES] if store else []


def of_plink(prefix):
    return [f"{prefix}{suffix}" for suffix in PLINK_FILES] if prefix else []


def of_source(chosen, in_store):
    """Return the places of a source as `ingest` and `project.second` describe it; of a store, those that `in_store` gives."""
    malariagen = chosen["malariagen"]
    named = {
        "vcz": in_store(chosen["vcz"]["store"]),
        "malariagen": in_store(malariagen["store"]) + in_store(malariagen["sites"]),
        "plink": of_plink(chosen["plink"]["prefix"]),
        "vcf": chosen["vcf"]["paths"],
    }
    return [*named.get(chosen["source"], [])]


def named_files(in_store=files_in):
    """Return the places that `ingest` reads."""
    chosen = lookup("genomics/ingest", within=config)
    return [*of_source(chosen, in_store), chosen["labels"]["table"]]


def second_set(in_store=files_in):
    """Return the places of the second data set."""
    chosen = lookup("genomics/project/second", within=config)
    return of_source(chosen, in_store)


def ingest_workers(wildcards, input):
    """Return the cores of `ingest`: all for a store, whose size the files that are watched do not tell."""
    of_chunks = SOURCE in {"vcz", "malariagen"}
    return workflow.cores if of_chunks else workers(wildcards, input)


source_files = watch_files(partial(named_files, of_store))
second_files = watch_files(partial(second_set, of_store))
# Settings of a simulation stand for its files, which are not there when it fails.
source = state(
    named_files,
    lookup("genomics/ingest", within=config),
    *([lookup("genomics/simulate", within=config)] if GENERATED else []),
)
