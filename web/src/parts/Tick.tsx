/** A box to tick, as the browser draws it: in a long list many of them are made at once. */
import { useEffect, useRef } from "react";

interface Props {
  label: string;
  isOn: boolean;
  /** Some of what it stands for are, others not. */
  isMixed?: boolean;
  onChange: () => void;
}

export function Tick({ label, isOn, isMixed = false, onChange }: Props) {
  const box = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (box.current) box.current.indeterminate = isMixed;
  }, [isMixed]);
  return <input ref={box} className="tick" type="checkbox" aria-label={label} checked={isOn} onChange={onChange} />;
}
