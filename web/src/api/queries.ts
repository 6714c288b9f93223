/** How answers are kept: asked again while somebody looks, and shown while the next one is on its way. */
import { QueryClient } from "@tanstack/react-query";
import { asApiError } from "@/api/errors";

export const SOON_MS = 3_000; // what changes while one looks
export const LATER_MS = 30_000; // what changes over minutes

export const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 1_000,
      retry: (count, error) => asApiError(error).isPassing && count < 2,
      retryDelay: (count) => 500 * 2 ** count,
      refetchOnWindowFocus: true,
    },
    mutations: { retry: false },
  },
});
