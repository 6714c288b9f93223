/** Tabs in one line, which is scrolled where there is no room; the chosen one is always in sight. */
import { Tabs } from "@mantine/core";
import { useEffect, useRef, type ReactNode } from "react";
import "@/parts/TabStrip.css";

interface Props {
  /** The chosen one. */
  value: string;
  label?: string;
  children: ReactNode;
}

export function TabStrip({ value, label, children }: Props) {
  const strip = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const [here, chosen] = [strip.current, strip.current?.querySelector<HTMLElement>("[aria-selected=true]")];
    if (here === null || !chosen) return;
    here.scrollLeft = chosen.offsetLeft - (here.clientWidth - chosen.offsetWidth) / 2;
  }, [value]);
  return (
    <Tabs.List ref={strip} className="tab-strip" aria-label={label}>
      {children}
    </Tabs.List>
  );
}
