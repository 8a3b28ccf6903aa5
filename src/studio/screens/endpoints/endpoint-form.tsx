import { useEffect, useState } from 'preact/hooks';
import type { OutgoingEndpoint } from '../../../contracts/message-records.ts';
import { CheckField, Field } from '../../ui/field.tsx';
import { JsonRow } from '../../ui/json-row.tsx';
import { type Form, textFields } from '../../ui/use-form.ts';
import { EventTypeNames } from '../messages/event-types.tsx';

/** Values of the form, as they are typed. */
export interface EndpointValues {
  url: string;
  types: string;
  description: string;
  application: string;
  rate: string;
  isOrdered: boolean;
  headers: string;
  schedule: string;
  timeout: string;
  secret: string;
}

export const NEW_ENDPOINT: EndpointValues = {
  ...{ url: '', types: '*', description: '', application: '', rate: '', isOrdered: false },
  ...{ headers: '', schedule: '', timeout: '', secret: '' },
};

export function valuesOf(endpoint: OutgoingEndpoint): EndpointValues {
  const { url, types, description, application, rateLimitPerSecond, ordered } = endpoint;
  return {
    ...NEW_ENDPOINT,
    url,
    types: types.join(', '),
    description: description ?? '',
    application: application ?? '',
    rate: rateLimitPerSecond === null ? '' : String(rateLimitPerSecond),
    isOrdered: ordered,
    schedule: endpoint.retrySchedule.join(', '),
    timeout: String(endpoint.timeoutMs / 1000),
  };
}

const wordsOf = (text: string): string[] => text.split(/[\s,]+/).filter((word) => word !== '');
const numberOrNull = (text: string): number | null => (text === '' ? null : Number(text));

/**
 * Returns the body of a call. Of an endpoint that exists, only changed fields are sent: a portal may not change others,
 * and the values of its headers are masked. Throws for headers that are not JSON.
 */
export function bodyOf(values: EndpointValues, before = NEW_ENDPOINT): Record<string, unknown> {
  const body: Record<string, unknown> = {
    url: values.url.trim(),
    types: wordsOf(values.types),
    description: values.description === '' ? null : values.description,
    application: values.application === '' ? null : values.application,
    rateLimitPerSecond: numberOrNull(values.rate),
    ordered: values.isOrdered,
    retrySchedule: values.schedule.trim() === '' ? null : wordsOf(values.schedule).map(Number),
    timeoutMs: values.timeout === '' ? null : Number(values.timeout) * 1000,
    ...(values.headers.trim() === '' ? {} : { headers: JSON.parse(values.headers) }),
    ...(values.secret === '' ? {} : { secret: values.secret.trim() }),
  };
  const fields: Partial<Record<string, keyof EndpointValues>> = {
    ...{ rateLimitPerSecond: 'rate', ordered: 'isOrdered', retrySchedule: 'schedule', timeoutMs: 'timeout' },
  };
  const isNew = before === NEW_ENDPOINT;
  return Object.fromEntries(
    Object.entries(body).filter(([name]) => {
      const field = fields[name] ?? (name as keyof EndpointValues);
      return values[field] !== before[field] || (isNew && (name === 'url' || name === 'types'));
    }),
  );
}

interface FieldsProps {
  id: string;
  form: Form<EndpointValues>;
  /** Whether the endpoint is created: a secret may be given, and an application chosen. */
  isNew: boolean;
  hasApplication: boolean;
}

/** Fields of an endpoint. */
export function EndpointFields({ id, form, isNew, hasApplication }: FieldsProps) {
  const text = textFields(form, id);
  return (
    <>
      <Field {...text('url')} label="URL" type="url" isRequired placeholder="https://example.com/webhooks" />
      <Field
        {...text('types')}
        label="Event types"
        isRequired
        list={`${id}-known-types`}
        hint="All (*), one (order.created), or those with a prefix (order.*); several with commas."
      />
      <EventTypeNames id={`${id}-known-types`} />
      <Field {...text('description')} label="Description" isOptional maxLength={500} />
      {hasApplication && (
        <Field
          {...text('application')}
          label="Application"
          isOptional
          hint="A customer of your product. The endpoint then gets only messages of this application."
        />
      )}
      <More {...{ id, form, isNew }} />
    </>
  );
}

/** Settings that few endpoints need. They open when one of them is refused. */
function More({ id, form, isNew }: Omit<FieldsProps, 'hasApplication'>) {
  const { values, issues, set } = form;
  const text = textFields(form, id);
  const [isOpen, setOpen] = useState(false);
  const isRefused = issues.some(({ name }) => MORE.includes(name));
  useEffect(() => {
    if (isRefused) setOpen(true);
  }, [isRefused]);
  return (
    <details open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>More settings</summary>
      {isOpen && (
        <div class="schema-form">
          <Field
            {...text('rate', 'rateLimitPerSecond')}
            {...{ label: 'Attempts per second at most', isOptional: true, type: 'number', min: 0 }}
          />
          <CheckField
            id={`${id}-ordered`}
            label="In order"
            isChecked={values.isOrdered}
            onChange={(isOrdered) => set({ isOrdered })}
            hint="A message waits until the previous one has succeeded or failed for good."
          />
          <Field
            {...text('schedule', 'retrySchedule')}
            label="Seconds between attempts"
            isOptional
            hint="Empty: 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, each with jitter."
          />
          <Field
            {...text('timeout', 'timeoutMs')}
            {...{ label: 'Seconds an attempt may last', isOptional: true, type: 'number', min: 1 }}
          />
          <JsonRow
            {...text('headers')}
            label="Further headers as JSON"
            isOptional
            hint={isNew ? undefined : 'Their values are not shown. A new object replaces all of them.'}
          />
          {isNew && (
            <Field
              {...text('secret')}
              {...{ label: 'Own secret', type: 'password', isOptional: true }}
              hint="whsec_ and the base64 of 24 to 64 bytes. Empty: a new one is generated."
            />
          )}
        </div>
      )}
    </details>
  );
}

/** Fields of the body that `More` contains. */
const MORE = ['rateLimitPerSecond', 'ordered', 'retrySchedule', 'timeoutMs', 'headers', 'secret'];
