/** Drawn here, so that no icon font and no package is fetched for two dozen strokes. */
import type { ReactNode } from "react";

function icon(paths: ReactNode) {
  return function Icon({ size = 16 }: { size?: number }) {
    return (
      <svg
        width={size}
        height={size}
        viewBox="0 0 24 24"
        fill="none"
        stroke="currentColor"
        strokeWidth={2}
        strokeLinecap="round"
        strokeLinejoin="round"
        aria-hidden="true"
        focusable="false"
      >
        {paths}
      </svg>
    );
  };
}

export const CopyIcon = icon(<path d="M9 9h11v11H9zM5 15H4V4h11v1" />);
export const CheckIcon = icon(<path d="M4 12.5 9.5 18 20 6.5" />);
export const OverviewIcon = icon(<path d="M4 13h6V4H4zM14 20h6v-9h-6zM4 20h6v-3H4zM14 7h6V4h-6z" />);
export const JobsIcon = icon(<path d="M4 6h16M4 12h16M4 18h10" />);
export const SubmitIcon = icon(<path d="M12 5v14M5 12h14" />);
export const CompareIcon = icon(<path d="M5 20V10M12 20V4M19 20v-7" />);
export const CostsIcon = icon(
  <path d="M12 3v18M16.5 7.5C15.5 6 14 5.5 12 5.5c-2.5 0-4.5 1-4.5 3s2 2.8 4.5 3.5 4.5 1.3 4.5 3.5-2 3-4.5 3c-2 0-3.8-.7-4.8-2.3" />,
);
export const SweepsIcon = icon(<path d="M5 5h3v3H5zM16 5h3v3h-3zM10.5 16h3v3h-3zM8 6.500h8M7 8l4 8M17 8l-4 8" />);
export const NodesIcon = icon(<path d="M4 5h16v6H4zM4 13h16v6H4zM8 8h.01M8 16h.01" />);
export const PricesIcon = icon(<path d="M4 18l5-6 4 3 7-9M15 6h5v5" />);
export const BudgetsIcon = icon(<path d="M4 7h16v12H4zM4 11h16M15 15h2M7 7V5h10v2" />);
export const AlertsIcon = icon(<path d="M6 16V11a6 6 0 0 1 12 0v5l2 2H4zM10 21h4" />);
export const LabIcon = icon(
  <path d="M10 3v6L4.5 18.500A1.7 1.7 0 0 0 6 21h12a1.7 1.7 0 0 0 1.5-2.500L14 9V3M8.5 3h7M7.5 15h9" />,
);
export const SettingsIcon = icon(
  <path d="M4 7h9M17 7h3M4 17h3M11 17h9M15 5a2 2 0 1 0 0 4 2 2 0 0 0 0-4M9 15a2 2 0 1 0 0 4 2 2 0 0 0 0-4" />,
);
export const SearchIcon = icon(<path d="M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14M16 16l4.5 4.5" />);
export const SunIcon = icon(
  <path d="M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8M12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.5 1.500M17.5 17.500L19 19M19 5l-1.5 1.500M6.5 17.500L5 19" />,
);
export const MoonIcon = icon(<path d="M20 14A8 8 0 0 1 10 4a8 8 0 1 0 10 10" />);
export const SystemIcon = icon(<path d="M4 5h16v11H4zM9 20h6M12 16v4" />);
export const PersonIcon = icon(<path d="M12 4a4 4 0 1 0 0 8 4 4 0 0 0 0-8M4 20c1-4 4-6 8-6s7 2 8 6" />);
export const DownloadIcon = icon(<path d="M12 4v11M7 11l5 5 5-5M4 20h16" />);
export const CloseIcon = icon(<path d="M6 6l12 12M18 6 6 18" />);
export const RefreshIcon = icon(<path d="M20 12a8 8 0 1 1-2.5-5.800M20 4v5h-5" />);
