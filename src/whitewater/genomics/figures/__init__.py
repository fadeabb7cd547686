"""The pictures of the genomics application: functions of tables that return Matplotlib figures."""

from whitewater.genomics.figures.components import component_pair, scree
from whitewater.genomics.figures.genome import loadings_by_position
from whitewater.genomics.figures.neighbourhood import umap
from whitewater.genomics.figures.quality import missingness, variant_quality
from whitewater.genomics.figures.relatives import kinship

__all__ = ["component_pair", "kinship", "loadings_by_position", "missingness", "scree", "umap", "variant_quality"]
