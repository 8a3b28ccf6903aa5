import { useState } from 'preact/hooks';

/** A command of `svc`, ready to copy. */
export function Command({ text }: { text: string }) {
  const [isCopied, setCopied] = useState(false);
  const copy = async (): Promise<void> => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), 1500);
  };
  return (
    <span class="command">
      <code>{text}</code>
      <button type="button" onClick={() => void copy()} aria-label={`Copy the command ${text}`}>
        {isCopied ? 'Copied' : 'Copy'}
      </button>
    </span>
  );
}
