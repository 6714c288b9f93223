/** Every address of this page. What a page is made of is fetched when it is first gone to. */
import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  Link,
  redirect,
  useNavigate,
} from "@tanstack/react-router";
import { Anchor, Center } from "@mantine/core";
import { lazy, Suspense } from "react";
import { ErrorNote } from "@/parts/ErrorNote";
import { Page } from "@/parts/Page";
import { basepath } from "@/place";
import { rememberScroll } from "@/scrolling";
import { token } from "@/session/token";
import { parseSearch, stringifySearch, type Search } from "@/search";
import { Shell } from "@/shell/Shell";

const root = createRootRoute({
  validateSearch: (search: Record<string, unknown>) => search as Search,
  errorComponent: ({ error }) => <ErrorNote error={error} onRetry={() => location.reload()} />,
  notFoundComponent: NoPage,
});

function NoPage() {
  return (
    <Center component="main" mih="100vh" p="md">
      <Page title="There is no such page">
        <Anchor component={Link} to="/">
          To the overview
        </Anchor>
      </Page>
    </Center>
  );
}

const SignInPage = lazy(() => import("@/session/SignInPage"));

const signIn = createRoute({
  getParentRoute: () => root,
  path: "/sign-in",
  component: function SignIn() {
    const navigate = useNavigate();
    const { next } = signIn.useSearch();
    return (
      <Suspense>
        <SignInPage next={safe(next)} onDone={(to) => void navigate({ href: safe(to), replace: true })} />
      </Suspense>
    );
  },
});

/** Only a path of this page: an address could be anybody's. */
function safe(next: string | undefined): string {
  return next?.startsWith("/") && !next.startsWith("//") ? next : "/";
}

const shell = createRoute({
  getParentRoute: () => root,
  id: "shell",
  component: Shell,
  beforeLoad: ({ location }) => {
    if (token() === null) throw redirect({ to: "/sign-in", search: { next: location.href } });
  },
});

const page = <Path extends string>(path: Path, load: () => Promise<{ default: React.ComponentType }>) =>
  createRoute({ getParentRoute: () => shell, path, component: lazyRouteComponent(load) });

const tree = root.addChildren([
  signIn,
  shell.addChildren([
    page("/", () => import("@/pages/overview/OverviewPage")),
    page("/jobs", () => import("@/pages/jobs/JobsPage")),
    page("/jobs/$jobId", () => import("@/pages/job/JobPage")),
    page("/submit", () => import("@/pages/submit/SubmitPage")),
    page("/compare", () => import("@/pages/compare/ComparePage")),
    page("/costs", () => import("@/pages/costs/CostsPage")),
    page("/sweeps", () => import("@/pages/sweeps/SweepsPage")),
    page("/nodes", () => import("@/pages/nodes/NodesPage")),
    page("/prices", () => import("@/pages/prices/PricesPage")),
    page("/budgets", () => import("@/pages/budgets/BudgetsPage")),
    page("/alerts", () => import("@/pages/alerts/AlertsPage")),
    page("/lab", () => import("@/pages/lab/LabPage")),
    page("/settings", () => import("@/pages/settings/SettingsPage")),
  ]),
]);

export const router = createRouter({
  routeTree: tree,
  basepath,
  parseSearch,
  stringifySearch,
  defaultPreload: "intent",
});
rememberScroll(router);

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
