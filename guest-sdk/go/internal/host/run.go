package host

// Run serves an extension from a host, for tests. The package weir sets it.
var Run func(extension any, host Host) error

// Describe gives the manifest and the described contracts of an extension, for tests. The package weir sets it.
var Describe func(extension any) (manifest []byte, contracts [][]byte, err error)
