"""``python -m streamdp``."""

from streamdp.cli import main

if __name__ == "__main__":
    main()
