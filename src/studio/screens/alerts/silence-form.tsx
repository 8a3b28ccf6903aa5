import { call, type Input } from '../../api/call.ts';
import { outdate } from '../../api/query.ts';
import { Field, issueOf, Select } from '../../ui/field.tsx';
import type { Action } from '../../ui/use-action.ts';
import { useFocusNew } from '../../ui/use-focus-new.ts';
import { textFields, useForm } from '../../ui/use-form.ts';
import { KIND_NAMES } from './kinds.ts';
import { ForAllField, newQuery, ownerQuery } from './views.tsx';

interface SilenceFormProps {
  first?: { rule?: string; object?: string };
  /** Owner of the alerts. Without it, operators choose. */
  owner?: { namespaceId: string };
  action: Action;
  onDone: () => void;
}

const DURATIONS = [
  ['1', '1 hour'],
  ['4', '4 hours'],
  ['24', '1 day'],
  ['168', '1 week'],
] as const;
const HOUR_MS = 3600_000;
const KINDS = [['', 'any'] as const, ...KIND_NAMES.map((kind) => [kind, kind] as const)];

/** Silences alerts of a kind, a rule or an object. They are recorded, but not sent. */
export function SilenceForm({ first = {}, owner, action, onDone }: SilenceFormProps) {
  const start = { kind: '', rule: '', object: '', hours: '1', comment: '', isForAll: false, ...first };
  const form = useForm(start, action, async ({ kind, rule, object, hours, comment, isForAll }) => {
    const entries = Object.entries({ kind, rule, object }).filter(([, value]) => value !== '');
    const body = {
      matcher: Object.fromEntries(entries),
      until: Date.now() + Number(hours) * HOUR_MS,
      ...(comment === '' ? {} : { comment }),
    } as Input<'createAlertSilence'>['body'];
    const query = owner ? ownerQuery(owner) : newQuery(isForAll);
    await call('createAlertSilence', { ...query, body });
    outdate('listAlertSilences', 'listAlerts', 'getAlert');
    onDone();
    return 'Alerts that match are not sent until the silence ends.';
  });
  const { issues } = form;
  useFocusNew('silence', 'silence-kind');
  const text = textFields(form, 'silence');
  return (
    <form class="schema-form" onSubmit={form.onSubmit}>
      <Select {...text('kind')} label="Kind of the alerts" options={KINDS} />
      <Field {...text('rule')} label="Rule of the alerts" isOptional />
      <Field {...text('object')} label="Id of the object" isOptional hint="* stands for any characters." />
      <Select {...text('hours')} label="For" options={DURATIONS} />
      {!owner && (
        <ForAllField
          id="silence-all"
          isChecked={form.values.isForAll}
          onChange={(isForAll) => form.set({ isForAll })}
        />
      )}
      <Field {...text('comment')} label="Comment" isOptional maxLength={500} />
      {issues.length > 0 && <p class="error">{issueOf(issues, 'matcher') ?? issues[0]!.message}</p>}
      <div class="actions">
        <button type="submit" class="primary" disabled={action.isBusy}>
          Silence
        </button>
      </div>
    </form>
  );
}
