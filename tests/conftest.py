import sys
from pathlib import Path

from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))

# Ranks and threads wait for each other, and machines for other work: a test may take its time.
settings.register_profile("in its own time", settings.default, deadline=None)
settings.load_profile("in its own time")
