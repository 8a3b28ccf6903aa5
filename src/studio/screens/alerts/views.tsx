import { useIsOperator } from '../../api/role.ts';
import { CheckField } from '../../ui/field.tsx';

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

/** Query with which a call creates an entry: in the namespace itself, or for operators in all. */
export const newQuery = (isForAll: boolean) => ownerQuery({ namespaceId: isForAll ? OPERATORS : '' });

interface ForAllProps {
  id: string;
  isChecked: boolean;
  onChange: (isForAll: boolean) => void;
}

/** Choice of operators between their own namespace and all. Other callers have none. */
export function ForAllField(props: ForAllProps) {
  if (!useIsOperator()) return null;
  return (
    <CheckField
      {...props}
      label="For all namespaces and the platform"
      hint="It then belongs to the operators. Rules use only channels of the same owner."
    />
  );
}

/** Returns who an entry belongs to, for tables. */
export function ownerText({ namespaceId, declared }: { namespaceId: string; declared: boolean }): string {
  const owner = namespaceId === OPERATORS ? 'operators' : namespaceId;
  return declared ? `${owner}, in svc.config.json` : owner;
}
