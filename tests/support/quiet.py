"""Settings of Dask for a machine that is busy with tests.

Imports nothing, since Dask reads these variables when it is imported.
"""

# Dask looks less at itself: a cluster that waits takes a tenth of a core to do so by default, a quarter of that here.

QUIET = {
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__INTERVAL": "10s",
    "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "1s",
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
}
# A machine that stands still for minutes loses no worker, and one that is busy none that takes long to start again.
PATIENT = {
    "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "1 hour",
    "DASK_DISTRIBUTED__DEPLOY__LOST_WORKER_TIMEOUT": "1 hour",
}
