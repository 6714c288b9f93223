/** Light, dark, or as the system has it: one button that goes round. */
import { ActionIcon, Tooltip, useMantineColorScheme } from "@mantine/core";
import { MoonIcon, SunIcon, SystemIcon } from "@/parts/icons";

const NEXT = { auto: "light", light: "dark", dark: "auto" } as const;
const SHOWN = {
  auto: { icon: <SystemIcon />, words: "as the system has it" },
  light: { icon: <SunIcon />, words: "light" },
  dark: { icon: <MoonIcon />, words: "dark" },
};

export function SchemeSwitch() {
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const { icon, words } = SHOWN[colorScheme];
  return (
    <Tooltip label={`colours: ${words}`}>
      <ActionIcon
        variant="default"
        aria-label={`colours: ${words}; change`}
        onClick={() => setColorScheme(NEXT[colorScheme])}
      >
        {icon}
      </ActionIcon>
    </Tooltip>
  );
}
