"""Step `manifest`: list inputs, outputs, settings and versions."""

from whitewater.manifest import manifest
from whitewater.script import main

if __name__ == "__main__":
    main(manifest)
