"""Makes the pictures of docs/images from the real dashboard: `make pictures`."""
