"""Who owns a group: pure decisions first, then what carries them out."""
