"""What is done to a model after its heads were removed: steps, one file each (`repairs.py`)."""

from typing import TYPE_CHECKING

from headcount.base.lazy import lazily

if TYPE_CHECKING:
    from headcount.repair.distil import Distil as Distil
    from headcount.repair.finetune import Finetune as Finetune
    from headcount.repair.lora import Lora as Lora
    from headcount.repair.recover import Recover as Recover
    from headcount.repair.repairs import REPAIRS as REPAIRS
    from headcount.repair.repairs import Repair as Repair
    from headcount.repair.repairs import RepairInputs as RepairInputs
    from headcount.repair.repairs import RepairReport as RepairReport

__getattr__, __dir__ = lazily(__name__)
