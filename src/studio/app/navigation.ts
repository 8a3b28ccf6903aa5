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
      { path: '/studio/inbox', label: 'Inbox' },
      { path: '/studio/logs', label: 'Logs' },
      { path: '/studio/events', label: 'Events' },
    ],
  },
  {
    title: 'Automation',
    items: [
      { path: '/studio/plugins', label: 'Plugins' },
      { path: '/studio/webhooks', label: 'Webhooks' },
      { path: '/studio/sources', label: 'Sources' },
      { path: '/studio/queues', label: 'Queues' },
      { path: '/studio/schedules', label: 'Schedules' },
      { path: '/studio/jobs', label: 'Jobs' },
    ],
  },
  {
    title: 'Send',
    items: [
      { path: '/studio/endpoints', label: 'Endpoints' },
      { path: '/studio/messages', label: 'Messages' },
    ],
  },
  {
    title: 'Platform',
    items: [
      { path: '/studio/alerts', label: 'Alerts' },
      { path: '/studio/secrets', label: 'Secrets' },
      { path: '/studio/connections', label: 'Connections' },
      { path: '/studio/hosts', label: 'Hosts' },
      { path: '/studio/access', label: 'Access' },
      { path: '/studio/audit', label: 'Audit log' },
    ],
  },
];
