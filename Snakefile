from snakemake.utils import min_version

min_version("9.0")


configfile: "config/config.yaml"
configfile: "config/taxi.yaml"


include: "workflows/foundation.smk"


module taxi:
    snakefile:
        "workflows/taxi/Snakefile"
    config:
        config


use rule * from taxi as taxi_*


rule all:
    default_target: True
    input:
        rules.taxi_all.input,


rule taxi:
    input:
        rules.taxi_all.input,
