"""Will out-of-tree kernel modules load on another kernel? What their Modules say of it, decided from values."""
