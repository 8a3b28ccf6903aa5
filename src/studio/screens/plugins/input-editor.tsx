import { useState } from 'preact/hooks';
import { Json, parsedJson } from '../../ui/json.tsx';
import { JsonField } from '../../ui/json-field/json-field.tsx';
import { type Field, fieldsOf, filledOf, inputOf, type Schema, type Texts, textsOf } from './schema.ts';

interface InputEditorProps {
  /** Prefix of the ids of the fields. */
  id: string;
  schema: Schema | null;
  /** Document in which references of the schema are resolved. */
  root?: unknown;
  /** Called with each value. Undefined stands for an input that is incomplete or not JSON. */
  onChange: (value: unknown) => void;
}

/** Input by its schema: a form, or a JSON text. */
export function InputEditor({ id, schema, root = schema, onChange }: InputEditorProps) {
  const fields = fieldsOf(schema, root);
  const [isText, setText] = useState(!fields);
  const [texts, setTexts] = useState<Texts>({});
  const [text, setJson] = useState('{}');
  const changeTexts = (next: Texts): void => {
    setTexts(next);
    onChange(inputOf(fields!, next));
  };
  const changeJson = (next: string): void => {
    setJson(next);
    onChange(parsedJson(next));
  };
  const swap = (): void => {
    if (isText) changeTexts(textsOf(fields!, parsedJson(text)));
    else changeJson(JSON.stringify(filledOf(fields!, texts), null, 2));
    setText(!isText);
  };
  return (
    <>
      {fields && (
        <button type="button" aria-pressed={isText} onClick={swap}>
          As JSON
        </button>
      )}
      {isText ? (
        <>
          {schema && <Json value={schema} label={`Schema of ${id}`} />}
          <JsonField id={`${id}-json`} label="Input as JSON" rows={5} text={text} onChange={changeJson} />
        </>
      ) : (
        <Fields id={id} fields={fields!} texts={texts} onChange={changeTexts} />
      )}
    </>
  );
}

interface FieldsProps {
  id: string;
  fields: readonly Field[];
  texts: Texts;
  onChange: (texts: Texts) => void;
}

export function Fields({ id, fields, texts, onChange }: FieldsProps) {
  return (
    <div class="filters">
      {fields.map((field) => (
        <div key={field.name}>
          <FieldInput
            id={`${id}-${field.name}`}
            field={field}
            text={texts[field.name] ?? ''}
            onChange={(text) => onChange({ ...texts, [field.name]: text })}
          />
          {field.description && <p class="reason">{field.description}</p>}
        </div>
      ))}
    </div>
  );
}

interface FieldInputProps {
  id: string;
  field: Field;
  text: string;
  onChange: (text: string) => void;
}

function FieldInput({ id, field, text, onChange }: FieldInputProps) {
  const { name, kind, isRequired, description } = field;
  const label = `${name}${isRequired ? '' : ' (optional)'}`;
  if (kind === 'json')
    return (
      <JsonField
        {...{ id, text, onChange, hint: description }}
        label={`${label}, as JSON`}
        rows={1}
        isOptional={!isRequired}
      />
    );
  return (
    <>
      <label for={id}>{label}</label>
      <Entry {...{ id, field, text, onChange }} />
    </>
  );
}

function Entry({ id, field: { kind, choices, isRequired }, text, onChange }: FieldInputProps) {
  if (kind !== 'boolean' && kind !== 'choice') {
    return (
      <input
        id={id}
        value={text}
        required={isRequired}
        inputMode={kind === 'number' ? 'decimal' : 'text'}
        onInput={({ currentTarget }) => onChange(currentTarget.value)}
      />
    );
  }
  return (
    <select id={id} value={text} onChange={({ currentTarget }) => onChange(currentTarget.value)}>
      <option value="">not set</option>
      {(kind === 'boolean' ? ['true', 'false'] : choices).map((choice) => (
        <option key={choice} value={choice}>
          {choice}
        </option>
      ))}
    </select>
  );
}
