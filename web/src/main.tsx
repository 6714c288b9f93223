import { MantineProvider } from "@mantine/core";
import "@mantine/core/styles.css";
import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { lazy, StrictMode, Suspense, useEffect } from "react";
import { createRoot } from "react-dom/client";
import { queries } from "@/api/queries";
import "@/app.css";
import { useIsSaid } from "@/parts/say";
import { nonce } from "@/place";
import { readable } from "@/readable";
import { router } from "@/routes";
import { useSession } from "@/session/token";
import { theme } from "@/theme";

const Messages = lazy(() => import("@/shell/Messages"));

function App() {
  const { token } = useSession();
  useEffect(() => {
    // Somebody else may be signed in now, or nobody: nothing of the last one is shown.
    queries.clear();
    void router.invalidate();
  }, [token]);
  return <RouterProvider router={router} />;
}

function Said() {
  return <Suspense>{useIsSaid() && <Messages />}</Suspense>;
}

const place = document.getElementById("root");
if (place === null) throw new Error("index.html has no #root");
createRoot(place).render(
  <StrictMode>
    <MantineProvider
      theme={theme}
      cssVariablesResolver={readable}
      defaultColorScheme="auto"
      getStyleNonce={() => nonce}
    >
      <QueryClientProvider client={queries}>
        <App />
        <Said />
      </QueryClientProvider>
    </MantineProvider>
  </StrictMode>,
);
