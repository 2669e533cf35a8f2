"""Where runs are carried out: here, in processes, on a Ray cluster, or as SLURM jobs."""

from headcount.base.registry import Registry

EXECUTORS = Registry("executor")
for _name, _where, _summary in (
    ("serial", "serial:Serial", "One run after the other, in this process."),
    ("processes", "processes:Processes", "Several processes on this machine."),
    ("ray", "ray:OnRay", "A Ray cluster, by its address, or a local one."),
    ("slurm", "slurm:OnSlurm", "SLURM jobs, submitted and left; see --wait."),
):
    EXECUTORS.add(_name, f"headcount.studies.executors.{_where}", _summary)
