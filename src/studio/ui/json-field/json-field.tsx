import { useEffect } from 'preact/hooks';
import { type JsonFieldProps, useJsonEditor } from './use-json-editor.ts';

/** Field for a JSON text. A plain text area until the editor is loaded, and if it cannot be loaded. */
export function JsonField(props: JsonFieldProps) {
  const { id, label, text, onChange, rows = 3, focusKey } = props;
  const { refs, isLoaded, attributes, problem, focus } = useJsonEditor(props);
  useEffect(() => {
    if (focusKey !== undefined) focus();
  }, [focusKey]);
  return (
    <div class="json-field" style={{ '--rows': rows }}>
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: the Tab key reaches the field itself. */}
      <label ref={refs.label} for={isLoaded ? undefined : id} onClick={isLoaded ? focus : undefined}>
        {label}
      </label>
      <div ref={refs.host} hidden={!isLoaded} />
      {!isLoaded && (
        <textarea
          {...attributes}
          ref={refs.area}
          id={id}
          rows={rows}
          spellcheck={false}
          value={text}
          onInput={(event) => onChange(event.currentTarget.value)}
        />
      )}
      <p class="error" role="status">
        {problem}
      </p>
    </div>
  );
}
