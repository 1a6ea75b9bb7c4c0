"""`batch/v1`: Job and CronJob, as far as runup reads them."""

from datetime import datetime

from kubekit.api.meta_v1 import Condition, Object, Wire


class JobStatus(Wire, frozen=True):
    """`status` of a Job."""

    active: int = 0
    succeeded: int = 0
    failed: int = 0
    start_time: datetime | None = None
    completion_time: datetime | None = None
    conditions: tuple[Condition, ...] = ()


class Job(Object, frozen=True):
    """A workload that ends."""

    status: JobStatus = JobStatus()


class CronJobSpec(Wire, frozen=True):
    """`spec` of a CronJob."""

    schedule: str = ""
    suspend: bool = False


class CronJobStatus(Wire, frozen=True):
    """`status` of a CronJob."""

    last_schedule_time: datetime | None = None
    last_successful_time: datetime | None = None


class CronJob(Object, frozen=True):
    """Jobs that are started at given times."""

    spec: CronJobSpec = CronJobSpec()
    status: CronJobStatus = CronJobStatus()
