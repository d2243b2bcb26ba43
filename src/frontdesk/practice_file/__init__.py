"""The practice file: what an operator writes about a practice, as YAML or JSON text.

Owns reading it, naming every fault in it with its path, and writing it back. Refuses storage and files on disk.
"""

from frontdesk.practice_file.contents import PatientRecord, PracticeFile
from frontdesk.practice_file.faults import Fault, PracticeFileError
from frontdesk.practice_file.parsing import parse
from frontdesk.practice_file.writing import dump, dump_json

__all__ = ["Fault", "PatientRecord", "PracticeFile", "PracticeFileError", "dump", "dump_json", "parse"]
