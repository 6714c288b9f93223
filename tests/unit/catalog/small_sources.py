# ruff: noqa: E501 — the lines are those of the sources
"""A few lines of every source, as they look in the wild."""

import gzip
import json
import shutil
from collections.abc import Sequence
from pathlib import Path

from crucible.catalog import facts

OFFERS = """provider,instance_type,gpu_name,gpu_count,gpu_mem_gb_each,vcpus,mem_gib,region,zone,price_ondemand_usd_hr,price_spot_usd_hr,as_of,source
aws,p4d.24xlarge,A100,8.0,40.0,96.0,1152.0,us-east-1,use1-az1,21.95,10.13,2026-08-22,skypilot-catalog v7/aws/vms.csv
aws,p4de.24xlarge,A100-80GB,8.0,80.0,96.0,1152.0,us-east-1,use1-az4,27.44,24.28,2026-08-22,skypilot-catalog v7/aws/vms.csv
aws,p4de.24xlarge,A100-80GB,8.0,80.0,96.0,1152.0,us-east-1,use1-az4,27.44,,2026-08-22,skypilot-catalog v7/aws/vms.csv
aws,p5e.48xlarge,H200,8.0,80.0,192.0,2048.0,us-east-2,use2-az1,,23.98,2026-08-22,skypilot-catalog v7/aws/vms.csv
aws,p5e.48xlarge,H200,8.0,80.0,192.0,2048.0,eu-west-2,euw2-az2,,,2026-08-22,skypilot-catalog v7/aws/vms.csv
aws,g6f.large,L4,0.125,2.8,2.0,8.0,us-east-1,use1-az1,0.29,0.04,2026-08-22,skypilot-catalog v7/aws/vms.csv
aws,inf2.xlarge,Inferentia2,1.0,,4.0,16.0,us-east-1,use1-az1,1.13,0.3,2026-08-22,skypilot-catalog v7/aws/vms.csv
azure,Standard_ND96isr_H100_v5,H100,12,,96.0,1900,eastus,,98.32,98.32,2025-09-11 (stale; manually maintained),skypilot-catalog v8/azure/vms.csv
azure,Standard_NC6,K80,1,,6.0,56,eastus,,0.9,0.1,2025-09-11 (stale; manually maintained),skypilot-catalog v8/azure/vms.csv
gcp,,A100,1,40.0,,,us-central1,us-central1-a,2.93,1.2,2026-08-21,skypilot-catalog v8/gcp/vms.csv
gcp,,tpu-v6e-8,1,,,,asia-east1,asia-east1-c,700.0,700.0,2026-08-21,skypilot-catalog v8/gcp/vms.csv
lambda,gpu_1x_h100_pcie,H100,1.0,80.0,26.0,200.0,us-east-1,,3.29,,2026-08-03,skypilot-catalog v8/lambda/vms.csv
runpod,2x_B200_SECURE,B200,2.0,0.2,56.0,360.0,CA,CA-MTL-1,13.58,13.58,2026-08-22,skypilot-catalog v8/runpod/vms.csv
vast,2x-A100_SXM4-32-65536,A100,2,160.0,32,64.0,"Montana, US, NA",,1.87,0.00,2025-10-27,skypilot-catalog v8/vast/vms.csv
vast,2x-A100_SXM4-32-65536,A100,2,80.0,32,64.0,"Germany, DE, EU",,1.87,0.00,2025-10-27,skypilot-catalog v8/vast/vms.csv
"""
GOOGLE = """machine_type,gpu_name,gpu_count,vcpus,mem_gib,region,zone,host_od,gpu_od,total_od_usd_hr,total_spot_usd_hr,as_of
a2-highgpu-1g,A100,1,12.0,85.0,us-central1,us-central1-a,0.74,2.93,3.67,1.44,2026-08-21
n1-standard-8,T4,1,8.0,30.0,us-central1,us-central1-a,0.38,0.35,0.73,0.25,2026-08-21
n1-standard-8,V100,1,8.0,30.0,us-central1,us-central1-a,0.38,2.48,2.86,0.54,2026-08-21
"""
SHAPES = "instance_type,gpu,gpu_count,gpu_mem_gb,vcpus,mem_gib,price_ondemand\nsome.{who},T4,1,16,8,32,\n"
CHECKS = """vendor,instance,gpu,gpu_mem_gb,gpu_count,usd_per_hour,region,as_of,source
AWS,p4d.24xlarge,A100 SXM,40,8,20.5,us-east-1,2026-11-09,public price page
RunPod Community,H100 SXM,H100 SXM,80,1,2.69,,2026-11-09,public price page
RunPod,B200,B200,180,1,6.0,,2026-10-07,public price page
Lambda,gpu_1x_h100_pcie,H100 PCIe,80,1,9.99,,2020-01-01,older than the list
"""
EGRESS = """provider,kind,usd_per_gb,tier,as_of,source,confidence
aws,internet,0.09,first,2026-08,x,high
aws,inter_region,0.02,usual,2025,x,medium
lambda,internet,0.0,none,2026-08,x,high
"""
COST = "src,dest,cost\naws:us-east-1,gcp:us-central1-a,0.09\naws:us-east-1,aws:us-east-2,0.01\n"
RATE = (
    "src_region,src_tier,src_instance_class,dst_region,dst_tier,dst_instance_class,iperf3_connections,"
    "throughput_sent,throughput_recieved,success\n"
    "aws:us-east-1,PREMIUM,m5,gcp:us-central1-a,PREMIUM,n2,64,5000000000,4500000000,True\n"
)
# Three in four ticks of an hour there is a machine; it is lost once in four hours and is back an hour later.
LIFE = [1, 1, 1, 0] * 24


def write_sources(folder: Path) -> Path:
    listed = folder / "catalog"
    listed.mkdir(parents=True)
    (listed / "offers.csv").write_text(OFFERS, encoding="utf-8")
    (listed / "gcp_gpu_offers_total.csv").write_text(GOOGLE, encoding="utf-8")
    (listed / "price_spotchecks_2026-11.csv").write_text(CHECKS, encoding="utf-8")
    (listed / "egress.csv").write_text(EGRESS, encoding="utf-8")
    for who in ("alibaba", "tencent"):
        (listed / f"{who}_instance_types.csv").write_text(SHAPES.format(who=who), encoding="utf-8")
    (folder / "skyplane_profiles").mkdir()
    for name, text in (("cost", COST), ("throughput", RATE)):
        (folder / "skyplane_profiles" / f"{name}.csv.gz").write_bytes(gzip.compress(text.encode()))
    write_trace(folder, "aws-02-15-2023", "us-east-1a_v100_1", LIFE)
    write_trace(folder, "aws-08-03-2023", "us-east-1a_v100_1", [1, 1, 0, 0] * 24)
    write_trace(folder, "gcp-04-30-2023", "us-east1-b_c3-88", [1] * 50)
    return folder


def write_trace(folder: Path, recorded: str, name: str, counts: Sequence[int], gap_s: int = 3600) -> None:
    path = folder / "spot_traces" / "availability" / "1-node" / recorded / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"metadata": {"gap_seconds": gap_s}, "data": list(counts)}), encoding="utf-8")


def own_facts(folder: Path) -> Path:
    """A copy of ours, without what is built."""
    shutil.copytree(facts.SHIPPED, folder)
    for name in ("instance_types.csv", "lanes.csv", "hazards.csv", "prices.npz"):
        (folder / name).unlink()
    return folder
