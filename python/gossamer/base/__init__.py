"""What every part uses: files on disks that fail, and closing."""
