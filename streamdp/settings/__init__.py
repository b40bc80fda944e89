"""What is wanted: every setting, where values come from, and the model that they mean."""

from streamdp.errors import ConfigError as ConfigError
from streamdp.settings.schema import Settings as Settings
