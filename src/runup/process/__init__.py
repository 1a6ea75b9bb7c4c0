"""What the operator's processes share: leading, serving, plans and how they are carried out."""
