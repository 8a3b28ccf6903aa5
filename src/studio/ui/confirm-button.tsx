interface ConfirmButtonProps {
  label: string;
  /** The question, which names the object and what cannot be undone. */
  question: string;
  isDisabled: boolean;
  onConfirmed: () => void;
}

/** Button of an action that cannot be undone: it asks first. */
export function ConfirmButton({ label, question, isDisabled, onConfirmed }: ConfirmButtonProps) {
  return (
    <button
      type="button"
      class="danger"
      disabled={isDisabled}
      onClick={() => {
        if (confirm(question)) onConfirmed();
      }}
    >
      {label}
    </button>
  );
}
