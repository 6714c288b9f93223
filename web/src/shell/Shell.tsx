/** Around every page: where one is, where one can go, who one is, and whether the server still answers. */
import { ActionIcon, AppShell, Box, Burger, Button, Group, NavLink, Text, Tooltip } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { Link, Outlet, useLocation } from "@tanstack/react-router";
import { lazy, Suspense, useEffect, useState } from "react";
import { SearchIcon } from "@/parts/icons";
import { Account } from "@/shell/Account";
import { Connection } from "@/shell/Connection";
import { Label } from "@/shell/Label";
import { destinationsFor } from "@/shell/nav";
import { SchemeSwitch } from "@/shell/SchemeSwitch";
import { useShortcuts } from "@/shell/shortcuts";
import { useMe } from "@/session/me";

const Palette = lazy(() => import("@/shell/Palette"));
const KeysHelp = lazy(() => import("@/shell/KeysHelp"));

export function Shell() {
  const [isMenuOpen, menu] = useDisclosure(false);
  const [isPaletteOpen, palette] = useDisclosure(false);
  const [isHelpOpen, help] = useDisclosure(false);
  const { pathname } = useLocation();
  const closeMenu = menu.close;
  useEffect(closeMenu, [pathname, closeMenu]);
  useShortcuts({ onPalette: palette.open, onHelp: help.open });
  return (
    <AppShell
      header={{ height: 52 }}
      navbar={{ width: 200, breakpoint: "sm", collapsed: { mobile: !isMenuOpen } }}
      padding="md"
    >
      <a className="skip" href={`${pathname}#content`} onClick={skipToContent}>
        Skip to the content
      </a>
      <AppShell.Header px="md">
        <Group h="100%" justify="space-between" wrap="nowrap">
          <Group gap="sm" wrap="nowrap">
            <Burger opened={isMenuOpen} onClick={menu.toggle} hiddenFrom="sm" size="sm" aria-label="menu" />
            <Text component={Link} to="/" fw={700} c="inherit" td="none">
              Crucible
            </Text>
            <Label />
            <Connection />
          </Group>
          <Group gap="xs" wrap="nowrap">
            <Button visibleFrom="sm" variant="default" size="xs" leftSection={<SearchIcon />} onClick={palette.open}>
              Go to… <span className="dim">&nbsp;⌘K</span>
            </Button>
            <ActionIcon hiddenFrom="sm" variant="default" size="lg" aria-label="go to" onClick={palette.open}>
              <SearchIcon />
            </ActionIcon>
            <Tooltip label="keys (?)">
              <ActionIcon visibleFrom="sm" variant="default" aria-label="keyboard shortcuts" onClick={help.open}>
                ?
              </ActionIcon>
            </Tooltip>
            <SchemeSwitch />
            <Account />
          </Group>
        </Group>
      </AppShell.Header>
      <AppShell.Navbar p="xs" aria-label="pages">
        <Menu pathname={pathname} />
      </AppShell.Navbar>
      <AppShell.Main id="content" tabIndex={-1} style={{ outline: "none" }}>
        <Box maw={1500} mx="auto">
          <Outlet />
        </Box>
      </AppShell.Main>
      <Suspense>
        {isPaletteOpen && <Palette onClose={palette.close} />}
        {isHelpOpen && <KeysHelp onClose={help.close} />}
      </Suspense>
      <Announced pathname={pathname} />
    </AppShell>
  );
}

function Menu({ pathname }: { pathname: string }) {
  const me = useMe();
  return destinationsFor(me.data).map(({ to, title, icon: Icon }) => {
    const isHere = to === "/" ? pathname === "/" : pathname === to || pathname.startsWith(`${to}/`);
    return (
      <NavLink
        key={to}
        component={Link}
        to={to}
        label={title}
        leftSection={<Icon size={18} />}
        active={isHere}
        aria-current={isHere ? "page" : undefined}
      />
    );
  });
}

function skipToContent(event: React.MouseEvent) {
  event.preventDefault();
  document.getElementById("content")?.focus();
}

/** Readers hear that another page is shown; the browser itself is silent about it. */
function Announced({ pathname }: { pathname: string }) {
  const [title, setTitle] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => setTitle(document.title), 300);
    return () => clearTimeout(timer);
  }, [pathname]);
  return (
    <div className="only-heard" aria-live="polite">
      {title}
    </div>
  );
}
