"""Methods that decide which heads stay, one file each: from what they need to a mask."""
