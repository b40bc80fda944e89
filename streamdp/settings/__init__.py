"""Every setting, where its value comes from, and the model that settings mean."""

from streamdp.errors import ConfigError as ConfigError
from streamdp.settings.schema import Settings as Settings
