from snakemake.utils import min_version

min_version("9.15")


configfile: f"{workflow.current_basedir}/config/config.yaml"
configfile: f"{workflow.current_basedir}/config/taxi.yaml"
configfile: f"{workflow.current_basedir}/config/genomics.yaml"
configfile: f"{workflow.current_basedir}/config/pagerank.yaml"
configfile: f"{workflow.current_basedir}/config/recsys.yaml"
configfile: f"{workflow.current_basedir}/config/benchmarks.yaml"


include: "workflows/common.smk"


# Before the modules: the first report that is named has the cover.
report: "workflows/report.rst"


module taxi:
    snakefile:
        "workflows/taxi/Snakefile"
    config:
        config


use rule * from taxi as taxi_*


module genomics:
    snakefile:
        "workflows/genomics/Snakefile"
    config:
        config


use rule * from genomics as genomics_*


module pagerank:
    snakefile:
        "workflows/pagerank/Snakefile"
    config:
        config


use rule * from pagerank as pagerank_*


module recsys:
    snakefile:
        "workflows/recsys/Snakefile"
    config:
        config


use rule * from recsys as recsys_*


module benchmarks:
    snakefile:
        "workflows/benchmarks/Snakefile"
    config:
        config


use rule * from benchmarks as benchmarks_*


rule all:
    default_target: True
    input:
        rules.taxi_all.input,
        rules.genomics_all.input,
        rules.pagerank_all.input,
        rules.recsys_all.input,


rule taxi:
    input:
        rules.taxi_all.input,


rule genomics:
    input:
        rules.genomics_all.input,


rule pagerank:
    input:
        rules.pagerank_all.input,


rule recsys:
    input:
        rules.recsys_all.input,


# No part of `all`: it measures this machine, for minutes.
rule benchmarks:
    input:
        rules.benchmarks_all.input,
