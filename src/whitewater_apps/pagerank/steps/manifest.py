"""Step `manifest`: what was made from what, where and how."""

from whitewater.manifest import manifest
from whitewater.script import main

if __name__ == "__main__":
    main(manifest)
