import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import {
  dataOf,
  type Field,
  type FieldIssue,
  type FieldSchema,
  type FieldValue,
  fieldsOf,
  firstValue,
} from './form-values.ts';
import { JsonField } from './json-field/json-field.tsx';

interface SchemaFormProps {
  /** Prefix of the ids of the fields, unique on the page. */
  id: string;
  schema: FieldSchema;
  /** Issues that the gateway has found. */
  issues: readonly FieldIssue[];
  onSubmit: (data: unknown) => void;
  /** Buttons; the one of type `submit` sends the form. */
  children: ComponentChildren;
}

/** Form with a field for each property of a JSON Schema. Other kinds of schemas get a field for JSON. */
export function SchemaForm({ id, schema, issues, onSubmit, children }: SchemaFormProps) {
  const fields = fieldsOf(schema);
  const [values, setValues] = useState<Record<string, FieldValue>>(() =>
    Object.fromEntries(fields.map((field) => [field.name, firstValue(field)])),
  );
  const [own, setOwn] = useState<readonly FieldIssue[]>([]);
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const { data, issues: found } = dataOf(fields, values);
    setOwn(found);
    if (found.length === 0) onSubmit(data);
  };
  const shown = own.length > 0 ? own : issues;
  return (
    <form class="schema-form" onSubmit={submit}>
      {fields.map((field) => (
        <FieldRow
          key={field.name}
          id={`${id}-${field.name}`}
          field={field}
          value={values[field.name] ?? ''}
          issue={shown.find(({ name }) => name === field.name)?.message}
          onChange={(value) => setValues((before) => ({ ...before, [field.name]: value }))}
        />
      ))}
      <div class="actions">{children}</div>
    </form>
  );
}

interface FieldProps {
  id: string;
  field: Field;
  value: FieldValue;
  issue: string | undefined;
  onChange: (value: FieldValue) => void;
}

function FieldRow(props: FieldProps) {
  const { id, field, issue } = props;
  const { description } = field.schema;
  const label = (
    <>
      {field.label}
      {!field.isRequired && field.kind !== 'boolean' && <span class="optional"> (optional)</span>}
    </>
  );
  const notes = (
    <>
      {description && (
        <span class="hint" id={`${id}-hint`}>
          {description}
        </span>
      )}
      {issue && (
        <span class="error" role="alert" id={`${id}-issue`}>
          {issue}
        </span>
      )}
    </>
  );
  if (field.kind === 'choices')
    return (
      <fieldset class="field">
        <legend>{label}</legend>
        <Choices {...props} />
        {notes}
      </fieldset>
    );
  if (field.kind === 'json')
    return (
      <div class="field">
        <JsonField
          {...{ id, label, issue, hint: description }}
          text={String(props.value)}
          onChange={props.onChange}
          isOptional={!field.isRequired}
        />
        {notes}
      </div>
    );
  return (
    <div class={field.kind === 'boolean' ? 'field check' : 'field'}>
      <label for={id}>{label}</label>
      <Control {...props} />
      {notes}
    </div>
  );
}

function Choices({ id, field, value, onChange }: FieldProps) {
  const chosen = Array.isArray(value) ? (value as readonly number[]) : [];
  const toggle = (index: number): void =>
    onChange(chosen.includes(index) ? chosen.filter((one) => one !== index) : [...chosen, index].sort());
  return (
    <div class="choices">
      {(field.schema.items?.enum ?? []).map((option, index) => (
        <label key={String(option)} for={`${id}-${index}`}>
          <input
            id={`${id}-${index}`}
            type="checkbox"
            checked={chosen.includes(index)}
            onChange={() => toggle(index)}
          />
          {textOf(option)}
        </label>
      ))}
    </div>
  );
}

function Control({ id, field, value, issue, onChange }: FieldProps) {
  const { kind, schema, isRequired } = field;
  const notes = [schema.description && `${id}-hint`, issue && `${id}-issue`].filter(Boolean).join(' ');
  const common = {
    id,
    required: isRequired && kind !== 'boolean',
    ...(notes ? { 'aria-describedby': notes } : {}),
    ...(issue ? { 'aria-invalid': true } : {}),
  };
  const text = String(value);
  const lengths = { minLength: schema.minLength, maxLength: schema.maxLength };
  if (kind === 'boolean')
    return (
      <input
        {...common}
        type="checkbox"
        checked={value === true}
        onChange={(event) => onChange(event.currentTarget.checked)}
      />
    );
  if (kind === 'choice')
    return (
      <select {...common} value={text} onChange={(event) => onChange(event.currentTarget.value)}>
        <option value="">{isRequired ? 'Choose…' : ''}</option>
        {(schema.enum ?? []).map((option, index) => (
          <option key={String(option)} value={String(index)}>
            {textOf(option)}
          </option>
        ))}
      </select>
    );
  if (kind === 'text')
    return (
      <textarea
        {...common}
        {...lengths}
        rows={3}
        value={text}
        onInput={(event) => onChange(event.currentTarget.value)}
      />
    );
  const entry = {
    value: text,
    onInput: (event: { currentTarget: HTMLInputElement }) => onChange(event.currentTarget.value),
  };
  if (kind === 'date') return <input {...common} {...entry} type="date" />;
  if (kind === 'line')
    return <input {...common} {...entry} {...lengths} type="text" pattern={schema.pattern} />;
  const step = schema.type === 'integer' ? 1 : 'any';
  return <input {...common} {...entry} type="number" min={schema.minimum} max={schema.maximum} step={step} />;
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));
