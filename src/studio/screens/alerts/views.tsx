const VIEWS = [
  ['', 'Alerts'],
  ['rules', 'Rules'],
  ['channels', 'Channels'],
  ['silences', 'Silences'],
] as const;

export type View = (typeof VIEWS)[number][0];

/** Links between the parts of the screen of alerts. */
export function Views({ current }: { current: View }) {
  return (
    <nav class="actions tabs" aria-label="Parts of the alerts">
      {VIEWS.map(([view, label]) => (
        <a
          key={view}
          href={view === '' ? '/studio/alerts' : `/studio/alerts?view=${view}`}
          aria-current={view === current ? 'page' : undefined}
        >
          {label}
        </a>
      ))}
    </nav>
  );
}

/** Owner of rules and channels of the platform. */
const OPERATORS = '*';

/** Query with which a call changes an entry. Those of the operators are named, others are in the namespace itself. */
export function ownerQuery({ namespaceId }: { namespaceId: string }): { query: { namespaceId?: never } } {
  return { query: namespaceId === OPERATORS ? { namespaceId: OPERATORS as never } : {} };
}

/** Returns who an entry belongs to, for tables. */
export function ownerText({ namespaceId, declared }: { namespaceId: string; declared: boolean }): string {
  const owner = namespaceId === OPERATORS ? 'operators' : namespaceId;
  return declared ? `${owner}, in svc.config.json` : owner;
}
