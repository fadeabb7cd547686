"""The parts of the generated web: words, sites, links, dirt, HTML."""
