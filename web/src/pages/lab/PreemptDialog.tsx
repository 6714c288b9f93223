/** How long ahead the machines are told, and the same as a command. */
import { NumberInput, Select, Text } from "@mantine/core";
import { useState } from "react";
import { Confirm } from "@/parts/Confirm";
import { preemptCommand } from "@/pages/lab/words";
import { usePreempt } from "@/pages/lab/queries";

const USUAL_S = 120;

interface Props {
  which: string[] | "all" | null;
  regions: string[];
  onClose: () => void;
}

export function PreemptDialog({ which, regions, onClose }: Props) {
  const [noticeS, setNoticeS] = useState(USUAL_S);
  const [region, setRegion] = useState<string | null>(null);
  const close = () => {
    preempt.reset();
    onClose();
  };
  const preempt = usePreempt(() => onClose());
  const isAll = which === "all";
  return (
    <Confirm
      title={isAll ? "Take every spot machine" : `Take ${which?.join(", ") ?? ""}`}
      action="Preempt"
      command={which === null ? undefined : preemptCommand(which, noticeS, (isAll && region) || undefined)}
      isOpen={which !== null}
      isPending={preempt.isPending}
      error={preempt.error}
      onClose={close}
      onConfirm={() =>
        preempt.mutate(
          isAll
            ? { all: true, region: region ?? undefined, notice_s: noticeS }
            : { all: false, machines: which ?? [], notice_s: noticeS },
        )
      }
    >
      <Text size="sm">
        The seller wants {isAll ? "them" : "it"} back, as when others pay more. Jobs there save what they can and go on
        elsewhere.
      </Text>
      {isAll && (
        <Select
          label="Where"
          placeholder="in every region"
          data={regions}
          value={region}
          onChange={setRegion}
          clearable
        />
      )}
      <NumberInput
        label="Notice, in seconds of the Lab's clock"
        description="0: the machine is not told at all"
        min={0}
        max={86_400}
        value={noticeS}
        onChange={(value) => setNoticeS(Number(value) || 0)}
      />
    </Confirm>
  );
}
