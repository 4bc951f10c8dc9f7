# %% [markdown]
# # S3 and Kubernetes
#
# Text in a bucket, workers in pods, vectors in a bucket. Hosts need no shared
# filesystem.
#
# There is no bucket here, so this page starts a server of its own that answers as S3
# does (moto). With a real bucket leave out `endpoint_url` and the keys: s3fs finds
# those of your environment or of the pod's role.

# %%
import gzip
import logging
import tempfile
from pathlib import Path

import click
import fsspec
import yaml
from distributed.cli import dask_worker
from moto.server import ThreadedMotoServer

import daskw2v
from daskw2v.cli import main
from daskw2v.cli.demo import PARAMS, write_text

logging.getLogger("werkzeug").setLevel("ERROR")  # it would print each request
server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
server.start()
host, port = server.get_host_and_port()
options = {
    "key": "a-key",
    "secret": "a-secret",
    "endpoint_url": f"http://{host}:{port}",
}

# %% [markdown]
# ## Text in a bucket

# %%
s3 = fsspec.filesystem("s3", **options)
s3.mkdir("bucket")
with tempfile.TemporaryDirectory() as folder:
    for file in write_text(Path(folder)):
        s3.pipe(f"bucket/text/{file.name}.gz", gzip.compress(file.read_bytes()))
s3.ls("bucket/text")

# %% [markdown]
# ## Train from it and into it
#
# `storage_options` are fsspec's. They are part of `Resources`, as they do not change
# the vectors. Keys are never written to the work directory.

# %%
resources = daskw2v.Resources(storage_options=options)
vectors = daskw2v.train(
    "s3://bucket/text/*.gz",
    work="s3://bucket/work",
    params=PARAMS.replace(epochs=5),
    resources=resources,
)
print(vectors.url)
vectors.most_similar("file", topn=3)

# %%
written = s3.find("bucket/work")
print(len(written), "objects")
assert not any(b"a-secret" in s3.cat(name) for name in written)

# %% [markdown]
# A service opens the model from the bucket. `in_memory=False` reads only what a query
# needs.

# %%
served = daskw2v.Vectors.open("s3://bucket/work", options, in_memory=False)
assert served.most_similar("file", topn=3) == vectors.most_similar("file", topn=3)
served

# %% [markdown]
# ## Workers on Kubernetes
#
# Any Dask cluster will do. With [dask-kubernetes](https://kubernetes.dask.org) and its
# operator, a cluster is an object of Kubernetes. Scheduler and workers run the same
# image, with `pip install 'daskw2v[s3]'` in it. The text below is for `kubectl apply
# -f`; set the image.

# %%
cluster = yaml.safe_load("""
apiVersion: kubernetes.dask.org/v1
kind: DaskCluster
metadata:
  name: words
spec:
  scheduler:
    spec:
      containers:
        - name: scheduler
          image: IMAGE-WITH-daskw2v[s3]
          args: [dask, scheduler]
          ports:
            - {name: tcp-comm, containerPort: 8786, protocol: TCP}
            - {name: http-dashboard, containerPort: 8787, protocol: TCP}
    service:
      type: ClusterIP
      selector: {dask.org/cluster-name: words, dask.org/component: scheduler}
      ports:
        - {name: tcp-comm, port: 8786, targetPort: tcp-comm, protocol: TCP}
        - {name: http-dashboard, port: 8787, targetPort: http-dashboard, protocol: TCP}
  worker:
    replicas: 8
    spec:
      containers:
        - name: worker
          image: IMAGE-WITH-daskw2v[s3]
          args:
            - dask
            - worker
            - --name=$(DASK_WORKER_NAME)
            - --nthreads=8
            - --memory-limit=28GB
          resources:
            requests: {cpu: "8", memory: 30Gi}
            limits: {memory: 30Gi}
          envFrom: [{secretRef: {name: bucket-keys}}]
""")
worker = cluster["spec"]["worker"]
print(
    worker["replicas"],
    "workers of",
    worker["spec"]["containers"][0]["resources"]["requests"],
)

# %% [markdown]
# A job starts the run. It needs little: workers read the text and write the vectors. If
# its pod is lost, the next one resumes the run.

# %%
job = yaml.safe_load("""
apiVersion: batch/v1
kind: Job
metadata:
  name: train-words
spec:
  backoffLimit: 3
  template:
    spec:
      restartPolicy: Never
      containers:
        - name: train
          image: IMAGE-WITH-daskw2v[s3]
          command:
            - daskw2v
            - train
            - s3://bucket/text/*.gz
            - --work=s3://bucket/work
            - --scheduler=tcp://words-scheduler:8786
            - --vector-size=200
            - --epochs=5
          envFrom: [{secretRef: {name: bucket-keys}}]
""")

# %% [markdown]
# Are the commands right? They can be read without being run. An option that does not
# exist would be an error here.

# %%
(program, name, *arguments) = job["spec"]["template"]["spec"]["containers"][0][
    "command"
]
train = main.get_command(click.Context(main), name)
assert program == "daskw2v"
assert train is not None
read = train.make_context(name, arguments).params
assert read["inputs"] == ("s3://bucket/text/*.gz",)
{option: read[option] for option in ("work", "scheduler", "vector_size", "epochs")}

# %%
program, name, *arguments = worker["spec"]["containers"][0]["args"]
assert (program, name) == ("dask", "worker")
read = dask_worker.main.make_context(name, arguments).params
{option: read[option] for option in ("nthreads", "memory_limit")}

# %% [markdown]
# `daskw2v estimate` says before a run how much memory the workers need and how long it
# takes. `pipelines/schedules` has a CronJob that retrains every night;
# [Nightly](nightly.py) shows what it does.

# %%
server.stop()
