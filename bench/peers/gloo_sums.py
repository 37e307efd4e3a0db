"""What a sum over ranks costs in torch.distributed over gloo: all_reduce of f32, the bytes of `bench/ranks sums`.
usage: mpirun -n 2 python gloo_sums.py [SECONDS]        needs torch with gloo"""
import os
import statistics
import sys
import time

os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
os.environ.setdefault("MASTER_PORT", "29581")
os.environ["RANK"], os.environ["WORLD_SIZE"] = os.environ["OMPI_COMM_WORLD_RANK"], os.environ["OMPI_COMM_WORLD_SIZE"]
import torch
import torch.distributed as dist

torch.set_num_threads(1)
dist.init_process_group("gloo")
budget = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
if dist.get_rank() == 0:
    print(f"torch {torch.__version__}, gloo, {dist.get_world_size()} ranks\n{'bytes':>10} {'us':>12}")
size = 4096
while size <= 64 << 20:
    x = torch.rand(size // 4)
    times = []
    end = time.perf_counter() + budget
    more = torch.ones(1)
    while more.item():
        dist.barrier()
        begin = time.perf_counter()
        dist.all_reduce(x)
        own = torch.tensor([time.perf_counter() - begin], dtype=torch.float64)
        dist.all_reduce(own, op=dist.ReduceOp.MAX)
        times.append(own.item())
        x.fill_(0.5)
        more = torch.tensor([1.0 if time.perf_counter() < end or len(times) < 5 else 0.0])
        dist.broadcast(more, 0)
    if dist.get_rank() == 0:
        print(f"{size:>10} {statistics.median(times) * 1e6:>12.1f}", flush=True)
    size *= 4
dist.barrier()
dist.destroy_process_group()
