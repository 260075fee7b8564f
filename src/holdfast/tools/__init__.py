"""What the commands do: runs compared, recorded, verified and drawn."""
