export const SHELLS = ['bash', 'zsh', 'fish', 'powershell'] as const;
export type Shell = (typeof SHELLS)[number];

export interface CompletionScript {
  script: string;
  /** Instruction for loading the script in every new shell. */
  install: string;
}

/**
 * Completion scripts. Each script calls `svc complete` with the words up to the cursor. Each output line is a value, a
 * tab and a description. The value `:files` stands for file names.
 */
export const SCRIPTS: Readonly<Record<Shell, CompletionScript>> = {
  bash: {
    install: "# To make it permanent: echo 'source <(svc completion bash)' >> ~/.bashrc",
    // Bash also splits words at `:`, `=` and `@`, and replaces only the text after the last of these characters. The
    // script therefore removes the preceding text from each candidate.
    script: `# Completion of svc for bash: source <(svc completion bash)
_svc() {
  local line=\${COMP_LINE:0:COMP_POINT} current kept candidate
  local -a words
  read -ra words <<<"$line"
  [[ $line == *[[:space:]] ]] && words+=('')
  current=\${words[\${#words[@]}-1]}
  kept=\${current%"\${current##*[:=@]}"}
  COMPREPLY=()
  while IFS=$'\\t' read -r candidate _; do
    if [[ $candidate == :files ]]; then
      compopt -o filenames 2>/dev/null
      while IFS= read -r candidate; do COMPREPLY+=("$candidate"); done < <(compgen -f -- "$current")
    else
      COMPREPLY+=("\${candidate#"$kept"}")
    fi
  done < <("\${words[0]}" complete -- "\${words[@]:1}" 2>/dev/null)
}
complete -o nosort -F _svc svc 2>/dev/null || complete -F _svc svc
`,
  },
  zsh: {
    install: "# To make it permanent: echo 'source <(svc completion zsh)' >> ~/.zshrc",
    script: `#compdef svc
# Completion of svc for zsh: source <(svc completion zsh)
_svc() {
  local line
  local -a described
  for line in "\${(@f)$("\${words[1]}" complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    [[ -z $line ]] && continue
    if [[ $line == :files ]]; then
      _files
    else
      local value=\${line%%$'\\t'*} about=
      [[ $line == *$'\\t'* ]] && about=\${line#*$'\\t'}
      described+=("\${value//:/\\\\:}\${about:+:$about}")
    fi
  done
  (( \${#described} )) && _describe -V 'svc' described
}
if [[ \${funcstack[1]} == _svc ]]; then
  _svc "$@"
else
  (( \${+functions[compdef]} )) || { autoload -Uz compinit && compinit }
  compdef _svc svc
fi
`,
  },
  fish: {
    install: '# To make it permanent: svc completion fish > ~/.config/fish/completions/svc.fish',
    script: `# Completion of svc for fish: svc completion fish | source
function __svc_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l found ($words[1] complete -- $words[2..-1] $current 2>/dev/null)
    if contains -- :files $found
        __fish_complete_path $current
    end
    string match -v -- :files $found
end
complete -c svc -f -k -a '(__svc_complete)'
`,
  },
  powershell: {
    install: '# To make it permanent: svc completion powershell >> $PROFILE',
    // PowerShell treats unquoted `@` and `,` as syntax, so values with these characters are quoted. Versions before 7.3
    // drop an empty last argument and are therefore not supported.
    script: `# Completion of svc for PowerShell 7.3 and newer: svc completion powershell | Out-String | Invoke-Expression
Register-ArgumentCompleter -Native -CommandName svc -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    $words = @($commandAst.CommandElements |
        Where-Object { $_.Extent.StartOffset -lt $cursorPosition } |
        ForEach-Object {
            if ($_ -is [System.Management.Automation.Language.StringConstantExpressionAst]) { $_.Value } else { $_.ToString() }
        })
    $program = $words[0]
    $rest = @($words | Select-Object -Skip 1)
    if ($wordToComplete -eq '') { $rest += '' }
    & $program complete -- @rest 2>$null | ForEach-Object {
        $value, $about = $_ -split "\`t", 2
        if ($value -eq ':files') {
            [System.Management.Automation.CompletionCompleters]::CompleteFilename($wordToComplete)
        } else {
            $text = if ($about) { $about } else { $value }
            $typed = if ($value -match '[@,]') { "'$value'" } else { $value }
            [System.Management.Automation.CompletionResult]::new($typed, $value, 'ParameterValue', $text)
        }
    }
}
`,
  },
};
