/** How people sign in here, and what this server is called. Anybody may ask. */
import { useQuery } from "@tanstack/react-query";
import { api, told } from "@/api/client";

export function useSignInWays() {
  return useQuery({
    queryKey: ["sign-in-ways"],
    queryFn: () => told(api.GET("/v1/login")),
    staleTime: Infinity,
    retry: false,
  });
}
