export interface NavigationGroup {
  title: string;
  items: ReadonlyArray<{ path: string; label: string }>;
}

/** Screens of the navigation, in the order in which they are shown. */
export const NAVIGATION: readonly NavigationGroup[] = [
  {
    title: 'Activity',
    items: [
      { path: '/studio/', label: 'Overview' },
      { path: '/studio/deliveries', label: 'Deliveries' },
      { path: '/studio/runs', label: 'Runs' },
    ],
  },
];
