"""What goes in and out by file and terminal: specs, points and evaluations as text, tables, the status of a study."""

from eign.exchange.tables import read_table, write_table

__all__ = ["read_table", "write_table"]
