/** Jobs that are made of many parts: searches, workflows, evaluations, batches; or one of them. */
import { useAddress } from "@/parts/address";
import { ManyList } from "@/pages/sweeps/ManyList";
import { ManyView } from "@/pages/sweeps/ManyView";

export default function SweepsPage() {
  const [{ job }] = useAddress();
  return job ? <ManyView key={job} jobId={job} /> : <ManyList />;
}
